/**
 * The editor's own language models, provided by a test extension.
 */

import type { Group } from './group';
import type { Parts } from './parts';

/** Scenarios with a model of the editor. */
export function models(_parts: Parts): Group[] {
  return [];
}
