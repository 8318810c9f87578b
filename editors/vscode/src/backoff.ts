/**
 * When to start a crashed server again: at once the first time, then slower and slower, and not at all when it keeps dying.
 */

/** Delays before each attempt, in milliseconds; one more crash than there are delays ends it. */
const DELAYS = [0, 1_000, 2_000, 4_000, 8_000];
/** A server that lived this long (milliseconds) counts as healthy: the next crash starts from the first delay. */
const HEALTHY = 60_000;

/** Decides on restarts. Time is given by the caller, in milliseconds. */
export class Backoff {
  private crashes = 0;
  private startedAt = 0;

  /** Notes that a server was started by a person or at activation: earlier crashes are forgotten. */
  reset(): void {
    this.crashes = 0;
  }

  /** Notes that a server is up. */
  started(now: number): void {
    this.startedAt = now;
  }

  /** The delay before the next attempt in milliseconds, or `undefined` when it has crashed too often. */
  crashed(now: number): number | undefined {
    if (this.startedAt > 0 && now - this.startedAt >= HEALTHY) {
      this.crashes = 0;
    }
    this.startedAt = 0;
    const delay = DELAYS[this.crashes];
    this.crashes += 1;
    return delay;
  }
}
