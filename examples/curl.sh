# Request a ranking and report a click, with curl. Starts a service, and stops it at the end.
set -eu
directory=$(mktemp -d)
trap 'rm -r "$directory"' EXIT
trap 'exit 130' INT TERM
cd "$directory"
banditrank serve --port 8429 --store sqlite:example.db 2>service.log &
service=$!
trap 'kill $service || true; wait $service || true; rm -r "$directory"' EXIT
address=http://127.0.0.1:8429
curl --silent --retry 60 --retry-connrefused --retry-delay 1 --output health.json $address/healthz

post() {
    curl --silent --show-error --fail-with-body --header "content-type: application/json" --data "$2" "$address$1"
    echo
}

post /v1/surfaces '{"name": "ads", "items": ["ad-1", "ad-2", "ad-3"], "n_positions": 2, "user_types": ["new", "old"]}'
shown=$(post /v1/surfaces/ads/rankings '{"user_type": "new"}')
echo "$shown"
id=$(echo "$shown" | sed 's/.*"id":"\([^"]*\)".*/\1/')
first=$(echo "$shown" | sed 's/.*"items":\["\([^"]*\)".*/\1/')
post /v1/feedback "{\"ranking\": \"$id\", \"clicked\": \"$first\"}"
post /v1/feedback "{\"ranking\": \"$id\", \"clicked\": \"$first\"}"
curl --silent $address/v1/surfaces/ads
echo
