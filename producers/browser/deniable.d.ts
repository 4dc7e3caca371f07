/** Reports of one device to a `deniable` edge, randomized before they leave it. See docs/browser.md. */

export interface Options {
  /** Address of the edge, such as "https://edge.example"; http only to this machine. */
  edge: string;
  /** The edge's public key, base64 of 32 bytes; `deniable edge` prints it. */
  publicKey: string;
  /** Largest epsilon of one report, above 0, for all collections or by name; a collection above it is not reported. */
  maxEpsilon: number | Record<string, number>;
  /** Largest epsilon of all reports together, at delta = 0, for each collection or by name; docs/browser.md. Default: none. */
  maxBudget?: MaxBudget | Record<string, MaxBudget>;
  /** A report waits at most so long, and at most its window's length or half the time it has left; finite, at least 0. Default 3600. */
  maxDelaySeconds?: number;
  /** Uploads that wait at most, a whole number, at least 1; a further one deletes one of them at random. Default 250. */
  maxUploads?: number;
  /** Send what waits when the page is hidden, which shows when that was. Default false. */
  sendOnLeave?: boolean;
  /** Report nothing under Global Privacy Control or Do Not Track, unless the person opted in. Default true. */
  honorPrivacySignals?: boolean;
  /** Mechanisms beside k-RR and Bloom RAPPOR: `mechanisms` of mechanisms.min.js. Default: none. */
  mechanisms?: Mechanisms;
  /** Default: IndexedDB. */
  storage?: Storage;
}

/** From an entry of the list, how to randomize for it; undefined if the mechanism is another one. */
export type Mechanisms = (entry: any) => unknown;

/** Epsilon for ever, or in each period. */
export type MaxBudget = number | { epsilon: number; periodSeconds: number };

/** One; two for a pair of fields; several for k-hot RAPPOR. */
export type Value = One | readonly One[] | ReadonlySet<One>;
/** null and undefined are missing; docs/producing.md says which value each means. */
export type One = string | number | bigint | boolean | null | undefined;

/** One record, changed atomically. */
export interface Storage {
  /** Let `change` change the state at once; resolve to what it returned when the state is stored, else reject. */
  change<T>(change: (state: any) => T): Promise<T>;
  /** Whether the state may have a CryptoKey; else the secret is stored as 32 bytes. */
  keepsKeys?: boolean;
}

/** "queued", or why nothing is reported. */
export type Outcome = "queued" | "over_window" | "over_budget" | "too_late" | "opted_out";

export interface Status {
  optedOut: boolean;
  /** Uploads that wait. */
  queued: number;
  /** Since the client was opened, by what happened: see docs/browser.md. */
  counts: Record<string, number>;
}

export interface Client {
  /**
   * Randomize a value and store the report, which is sent later.
   *
   * Throws DeniableError, whose reason is type (of the value), unknown_collection, unsupported, epsilon, budget,
   * signature, revision, origin, unreachable or storage.
   */
  report(collection: string, value: Value): Promise<Outcome>;
  /** Send everything that waits, now, but not before a pause that the edge asked for; after at most 30 s, how many uploads still wait. */
  flush(): Promise<number>;
  /**
   * Delete everything, in other tabs too, and remember only that the person opted out.
   *
   * Throws DeniableError, whose reason is storage, if that cannot be stored: then it holds for this client alone.
   */
  optOut(): Promise<void>;
  /** Take part again, as a new device. */
  optIn(): Promise<void>;
  status(): Promise<Status>;
  /** Stop timers and listeners; what waits is sent when a client is opened again. */
  close(): void;
}

/** Throws DeniableError, whose reason is option, if an option is missing or out of its range. */
export function open(options: Options): Promise<Client>;

/** A storage that ends with the page or process: permanent responses and budgets end with it too. */
export function memoryStorage(state?: object): Storage;

export class DeniableError extends Error {
  readonly name: "DeniableError";
  readonly reason: string;
}
