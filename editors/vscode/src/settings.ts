/**
 * Settings as the server wants them: nested, and only those that a person has set.
 *
 * Defaults are never sent: the server has the same ones, and a default sent from here would outrank its configuration file
 * and environment.
 */

/** Settings of the section that are this client's own business. */
const CLIENT_ONLY = new Set(['editorModel', 'server.path', 'trace.server']);

/** Settings that the server takes from user settings only; a workspace may not set them. */
export function isMachine(key: string): boolean {
  return !key.startsWith('hints.') && !key.startsWith('diagnostics.') && !key.startsWith('files.');
}

/** A nested object of JSON values. */
export interface Nested {
  [key: string]: unknown;
}

/** Builds the nested object. `read` gives the value set for a key, or `undefined` where none is; empty strings and nulls count as unset. */
export function nested(keys: readonly string[], read: (key: string) => unknown): Nested {
  const result: Nested = {};
  for (const key of keys) {
    const value = CLIENT_ONLY.has(key) ? undefined : read(key);
    if (value === undefined || value === null || value === '') {
      continue;
    }
    const parts = key.split('.');
    const last = parts.pop() ?? key;
    let place = result;
    for (const part of parts) {
      const inner = (place[part] as Nested | undefined) ?? {};
      place[part] = inner;
      place = inner;
    }
    place[last] = value;
  }
  return result;
}

/** Walks a dotted path into a nested object; the whole object for an empty path. */
export function select(values: Nested, path: string): unknown {
  let place: unknown = values;
  for (const part of path === '' ? [] : path.split('.')) {
    place = typeof place === 'object' && place !== null ? (place as Nested)[part] : undefined;
  }
  return place;
}
