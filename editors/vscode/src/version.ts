/**
 * Whether a server and this client understand each other.
 */

/** The oldest server this client works with. */
export const MINIMUM = '0.1.0';

/** Finds `1.2.3` in the answer of `codeinterp --version`, or `undefined` when there is none. */
export function parseVersion(output: string): string | undefined {
  return /\b(\d{1,6}\.\d{1,6}\.\d{1,6})\b/.exec(output.slice(0, 1000))?.[1];
}

/** Negative, zero or positive as `a` is older than, the same as, or newer than `b`. */
export function compareVersions(a: string, b: string): number {
  const left = a.split('.').map(Number);
  const right = b.split('.').map(Number);
  for (let i = 0; i < 3; i += 1) {
    const difference = (left[i] ?? 0) - (right[i] ?? 0);
    if (difference !== 0) {
      return difference;
    }
  }
  return 0;
}

/** True when this client can work with a server of that version. */
export function isSupported(version: string): boolean {
  return compareVersions(version, MINIMUM) >= 0;
}
