// The API key: kept for this tab alone, and gone when it is closed.

const PLACE = "banditrank-key";

export const key = {
  get: () => sessionStorage.getItem(PLACE),
  set: (value) => sessionStorage.setItem(PLACE, value),
  forget: () => sessionStorage.removeItem(PLACE),
};
