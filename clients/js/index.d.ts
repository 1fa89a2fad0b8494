/** Settings of a client. */
export interface ClientOptions {
  /** URL of the service, such as `https://ranking.shop.example`. */
  url: string;
  /** API key, if the service requires one. Visitors of a page can read it: give it the right `rank` only. */
  apiKey?: string;
  /** Time limit of `rank` in milliseconds; 1000 by default. */
  timeoutMs?: number;
  /** Items to show when the service issues no ranking and none is known; none by default. */
  defaultOrder?: readonly string[] | null;
  /** Called with a message and the error itself whenever `rank` returns a default ranking; `console.warn` by default. */
  onDefault?: (message: string, error: unknown) => unknown;
}

/** Options of a ranking. All but `defaultOrder` are sent to the service. */
export interface RankOptions {
  /** Items that may be shown; all by default. Retired and unknown ones are `ignored`. */
  candidates?: readonly string[] | null;
  /** Items that must not be shown. Retired and unknown ones are `ignored`. */
  exclude?: readonly string[] | null;
  /** Items at fixed positions, by position from 1: `{1: "ad-3"}`. */
  pinned?: Readonly<Record<number, string>> | null;
  /** Id of the visitor, who stays in the same arm of an experiment. */
  visitor?: string | null;
  /** Default order of this ranking, instead of the client's. */
  defaultOrder?: readonly string[] | null;
}

/** A ranking that the service issued: plain JSON, which a server can pass to its page. */
export interface IssuedRanking {
  /** Identifies the ranking in its feedback. */
  id: string;
  /** Items in order of positions. */
  items: string[];
  /** End of the attribution window in ISO 8601; later feedback is rejected. */
  expiresAt: string;
  /** Arm of the surface's experiment; null without an experiment. */
  arm: string | null;
  /** Candidates and excluded items that are retired or unknown; undefined from a service before this field. */
  ignored?: string[];
  isDefault: false;
}

/** The last known ranking or the default order, returned if the service issues no ranking: plain JSON. It takes no feedback. */
export interface DefaultRanking {
  id: null;
  /** Items in order of positions. */
  items: string[];
  expiresAt: null;
  arm?: undefined;
  ignored?: undefined;
  isDefault: true;
  /** Why the service issued no ranking. */
  error: RankingError;
}

/** Why the service issued no ranking: the fields of the error as plain JSON, not an `Error`. */
export interface RankingError {
  /** `BanditRankError` if the service refused the request, `TimeoutError` if it was too slow, and others. */
  name: string;
  message: string;
  /** HTTP status, if there was a response. */
  status?: number;
  /** As `type` of `BanditRankError`. */
  type?: string;
  /** As `title` of `BanditRankError`. */
  title?: string;
  /** As `field` of `BanditRankError`. */
  field?: string;
  /** As `request_id` of `BanditRankError`. */
  request_id?: string;
}

export type Ranking = IssuedRanking | DefaultRanking;

/** Feedback for a ranking. */
export interface Feedback {
  /** The item that was clicked, or several under click model `position-based`; null, the default, for none. */
  clicked?: string | readonly string[] | null;
  /** Value of the click, from 0 to 1; 1 by default. Must be omitted without a click. */
  reward?: number;
  /** Whether to count the ranking now; true by default, except for clicks under `position-based`. */
  final?: boolean;
}

/**
 * - `counted`: the ranking is counted with this feedback.
 * - `recorded`: the ranking is counted later, and more clicks may follow.
 * - `repeated`: the same feedback arrived before.
 * - `ignored`: the ranking is a default ranking; nothing was sent.
 */
export type FeedbackStatus = "counted" | "recorded" | "repeated" | "ignored";

/** Element of a page, or anything else that emits clicks. */
export interface ClickTarget {
  addEventListener(type: string, listener: (event: any) => void, options?: any): void;
}

/** Options of `observe`. */
export interface ObserveOptions {
  /**
   * Whether a ranking without a click is final as soon as the page is hidden, such as by a change of tabs; true by
   * default. If false, it is final when the page is left; browsers on phones often end without saying so.
   */
  finalWhenHidden?: boolean;
  /** Called with the status of each feedback, or the error that rejected it. */
  onFeedback?: (result: FeedbackStatus | Error, clicked: string | null) => void;
}

/** A request that the service refused: its problem details (RFC 9457). */
export class BanditRankError extends Error {
  constructor(status: number, problem?: object);
  /** HTTP status. */
  status: number;
  /** What is wrong with this request; also the message. */
  detail: string;
  /** URN of the type of error, such as `urn:banditrank:problem:unknown-surface`. */
  type?: string;
  /** Short description of the type of error. */
  title?: string;
  /** Field that has an invalid value. */
  field?: string;
  /** Id of the request in the log of the service. */
  request_id?: string;
}

/** A client of the ranking service. */
export class BanditRank {
  /** @throws {TypeError} If the key cannot be sent in a header. */
  constructor(options: ClientOptions);

  /**
   * Return a ranking for a user of a type, within the time limit.
   *
   * If the service is unavailable or too slow, refuses the request, or responds with an error or with something else, the
   * result is a default ranking: the last known ranking for this surface and user type, or else the default order. Both
   * follow `candidates`, `exclude` and `pinned`, and are filled up with the default order and the candidates. The ranking
   * has the `error`, and `onDefault` is called.
   *
   * The request is never cached (`no-store`): each call is a ranking of its own, also in frameworks that cache `fetch`.
   */
  rank(surface: string, userType: string, options?: RankOptions): Promise<Ranking>;

  /**
   * Send the feedback for a ranking, and return its status once it is durable. Feedback for default rankings is ignored.
   *
   * The request outlives the page, and is retried up to three times: repeated feedback counts once.
   *
   * @throws {BanditRankError} If the service refuses the feedback, or responds with an error to all attempts.
   * @throws {Error} If the service is unavailable: the error of `fetch`.
   */
  feedback(ranking: Pick<Ranking, "id">, feedback?: Feedback): Promise<FeedbackStatus>;

  /**
   * Report clicks on the elements that show a ranking, and that there was none when the user leaves the page.
   *
   * Under click model `single-look` the first click is reported; under `position-based` all are, and the ranking is
   * final when the page is left. Stopped in the task in which it started, as by React's Strict Mode, it reports nothing.
   *
   * @param elements One element for each item, in order of positions. Clicks inside an element count.
   * @returns A function for pages that replace the ranking: report that the user left, and stop.
   */
  observe(ranking: Ranking, elements: Iterable<ClickTarget>, options?: ObserveOptions): () => void;
}
