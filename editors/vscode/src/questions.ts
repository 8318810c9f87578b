/**
 * Recent questions, newest first.
 */

/** How many are kept. */
const LIMIT = 15;

/** The list with `question` in front, without doubles. */
export function remember(recent: readonly string[], question: string): string[] {
  const text = question.trim();
  if (text === '') {
    return [...recent];
  }
  return [text, ...recent.filter((other) => other !== text)].slice(0, LIMIT);
}

/** What was stored, as far as it is a list of strings. */
export function sanitize(stored: unknown): string[] {
  return Array.isArray(stored) ? stored.filter((item): item is string => typeof item === 'string').slice(0, LIMIT) : [];
}
