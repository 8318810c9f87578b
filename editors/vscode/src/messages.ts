/**
 * Words of failures.
 */

/** The message of anything that was thrown. */
export function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
