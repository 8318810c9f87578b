/**
 * The runs that the server knows, as the views show them. No VS Code type: a plain model with listeners.
 */
import { isFinal, type RunChanged, type RunRow, type RunStatus } from './lsp_ext';

/** A run and the step it is at. */
export interface Run extends RunRow {
  step: number;
  /** The document asked about; empty where there is none. */
  uri: string;
}

/** What changed: one run, or the whole list (`undefined`). */
export type RunsListener = (run: Run | undefined) => void;

/** Holds the runs by id. */
export class Runs {
  private readonly byId = new Map<string, Run>();
  private readonly listeners = new Set<RunsListener>();

  /** Calls `listener` after each change until the returned function is called. */
  onChange(listener: RunsListener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** One run. */
  get(id: string): Run | undefined {
    return this.byId.get(id);
  }

  /** All runs, newest first: ids begin with the time of the start. */
  newestFirst(): Run[] {
    return [...this.byId.values()].sort((a, b) => (a.run < b.run ? 1 : -1));
  }

  /** The newest run, of one document where `uri` is given. */
  latest(uri?: string): Run | undefined {
    return this.newestFirst().find((run) => uri === undefined || run.uri === uri);
  }

  /** Runs that are not final, newest first. */
  active(): Run[] {
    return this.newestFirst().filter((run) => !isFinal(run.status));
  }

  /** Takes the server's list as the truth. */
  replace(rows: readonly RunRow[]): void {
    const old = new Map(this.byId);
    this.byId.clear();
    for (const row of rows) {
      this.byId.set(row.run, { ...row, uri: row.uri ?? '', step: old.get(row.run)?.step ?? 0 });
    }
    this.emit(undefined);
  }

  /** Notes a run that this client has just started. */
  add(row: RunRow): void {
    if (!this.byId.has(row.run)) {
      const run = { ...row, uri: row.uri ?? '', step: 0 };
      this.byId.set(row.run, run);
      this.emit(run);
    }
  }

  /** Takes a notification. Returns true when the run has just become final, so that its artifacts are worth fetching. */
  apply(change: RunChanged): boolean {
    const before = this.byId.get(change.run);
    const run: Run = {
      run: change.run,
      question: before?.question ?? '',
      artifacts: before?.artifacts ?? [],
      status: change.status,
      uri: change.uri ?? before?.uri ?? '',
      document: change.document,
      step: change.step ?? before?.step ?? 0,
    };
    // A final status never goes back: a late notification of an earlier step must not bring a spinner back.
    if (before !== undefined && isFinal(before.status) && !isFinal(run.status)) {
      return false;
    }
    this.byId.set(run.run, run);
    this.emit(run);
    return isFinal(run.status) && (before === undefined || !isFinal(before.status));
  }

  /** The server is gone: what was running there runs no more. */
  interrupted(): void {
    for (const run of this.active()) {
      this.byId.set(run.run, { ...run, status: 'cancelled' });
    }
    this.emit(undefined);
  }

  private emit(run: Run | undefined): void {
    for (const listener of this.listeners) {
      listener(run);
    }
  }
}

/** The codicon of a status, as VS Code names it. */
export function statusIcon(status: RunStatus): string {
  switch (status) {
    case 'queued':
      return 'clock';
    case 'running':
      return 'loading~spin';
    case 'completed':
      return 'pass';
    case 'incomplete':
      return 'warning';
    case 'failed':
      return 'error';
    case 'cancelled':
      return 'circle-slash';
  }
}
