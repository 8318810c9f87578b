/**
 * Progress that the server reports: in the status bar at once, and as a notification with a Cancel button when it lasts.
 */
import * as vscode from 'vscode';

/** A work shorter than this, in milliseconds, shows no notification. */
const PATIENCE = 1_500;

/** A change of progress: `begin`, `report` or `end`. */
export interface ProgressValue {
  kind: string;
  title?: string;
  message?: string;
  percentage?: number;
  cancellable?: boolean;
}

interface Work {
  title: string;
  cancellable: boolean;
  message: string | undefined;
  percentage: number;
  timer: NodeJS.Timeout | undefined;
  report: ((value: { message?: string; increment?: number }) => void) | undefined;
  end: (() => void) | undefined;
}

/** Shows every progress of the server. */
export class ProgressView implements vscode.Disposable {
  private readonly works = new Map<string | number, Work>();

  constructor(
    private readonly setStatus: (work: string | undefined) => void,
    private readonly cancel: (token: string | number) => void,
  ) {}

  dispose(): void {
    this.clear();
  }

  /** Ends everything: the server is gone, so that no end will come. */
  clear(): void {
    for (const token of [...this.works.keys()]) {
      this.update(token, { kind: 'end' });
    }
  }

  /** Takes one change. */
  update(token: string | number, value: ProgressValue): void {
    if (value.kind === 'begin') {
      this.begin(token, value);
    }
    const work = this.works.get(token);
    if (work === undefined) {
      return;
    }
    if (value.kind === 'end') {
      clearTimeout(work.timer);
      work.end?.();
      this.works.delete(token);
    } else {
      work.message = value.message ?? work.message;
      const percentage = Math.min(100, Math.max(work.percentage, value.percentage ?? 0));
      work.report?.({ ...(work.message === undefined ? {} : { message: work.message }), increment: percentage - work.percentage });
      work.percentage = percentage;
    }
    const last = [...this.works.values()].pop();
    this.setStatus(last?.message ?? last?.title);
  }

  private begin(token: string | number, value: ProgressValue): void {
    const work: Work = {
      title: value.title ?? 'Code Interpreter',
      cancellable: value.cancellable ?? false,
      message: undefined,
      percentage: 0,
      timer: setTimeout(() => this.notify(token, work), PATIENCE),
      report: undefined,
      end: undefined,
    };
    this.works.set(token, work);
  }

  private notify(token: string | number, work: Work): void {
    void vscode.window.withProgress(
      { location: vscode.ProgressLocation.Notification, title: work.title, cancellable: work.cancellable },
      (progress, cancelled) =>
        new Promise<void>((resolve) => {
          work.report = (change) => progress.report(change);
          work.end = resolve;
          progress.report({ ...(work.message === undefined ? {} : { message: work.message }), increment: work.percentage });
          cancelled.onCancellationRequested(() => {
            this.cancel(token);
            // The notification goes at once; the status bar follows the run to its end.
            resolve();
          });
        }),
    );
  }
}
