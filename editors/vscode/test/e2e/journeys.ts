/**
 * Whole journeys with the real program: built-in analysis, process sandbox.
 */
import type { Group } from './group';
import type { Parts } from './parts';

export function journeys(_parts: Parts): Group[] {
  return [];
}
