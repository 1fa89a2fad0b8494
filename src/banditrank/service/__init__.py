"""The live side over HTTP."""
