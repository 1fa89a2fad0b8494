// The API key, in the session storage of this tab.

const STORAGE_KEY = "banditrank-key";

export const apiKey = {
  get: () => sessionStorage.getItem(STORAGE_KEY),
  set: (value) => sessionStorage.setItem(STORAGE_KEY, value),
  remove: () => sessionStorage.removeItem(STORAGE_KEY),
};
