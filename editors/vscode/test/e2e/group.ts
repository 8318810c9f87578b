/**
 * A group of scenarios that share one editor window, in the order in which they stand.
 */
import type { Workbench } from './workbench';

export interface Group {
  name: string;
  start: () => Promise<Workbench>;
  scenarios: Record<string, (bench: Workbench) => Promise<void>>;
}
