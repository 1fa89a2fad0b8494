// State of the page that belongs to its user; updates of the data do not change it.

export const MAX_TYPES_IN_CHARTS = 12; // tables show all
export const MAX_TYPES_PER_CHART = 3; // with more, each type has a chart
export const MAX_ITEMS = 12; // in charts; with more, the current items and search results

export const uiState = {
  clickChartType: null, // user type in the click chart; null for all
  search: "", // search text for items
  openTables: new Set(),
  onChange: () => {},
};

export function updateUiState(changes) {
  Object.assign(uiState, changes);
  uiState.onChange();
}
