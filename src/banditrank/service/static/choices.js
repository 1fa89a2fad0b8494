// What whoever looks at the page has chosen: it belongs to them, and no update touches it.

export const MOST_TYPES = 12; // in charts; tables have all
export const MOST_ITEMS = 12; // beyond these a chart shows those on show, and what is searched for

export const choices = {
  clicksOf: null, // a user type in the click chart, null for all
  search: "", // for items
  openTables: new Set(),
  onChange: () => {},
};

export function choose(changes) {
  Object.assign(choices, changes);
  choices.onChange();
}
