/**
 * Paths of virtual documents, without any VS Code type: what a path names, and the path a thing has.
 */

/** What a path under the `codeinterp:` scheme names. */
export type Target =
  | { kind: 'report'; run: string }
  | { kind: 'step'; run: string; path: string }
  | { kind: 'artifact'; run: string; name: string };

/** Run ids are short names of letters, digits, `-`, `_` and dots inside; anything else is not a run. */
const RUN = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/**
 * Tells what a decoded path names, or `undefined` for a path that names nothing.
 *
 * A report may be called by any `.md` name directly under its run (`/runs/7/sales.csv.md`), so that a tab can carry the
 * name of the analyzed file; the server knows it as `report.md`.
 */
export function parsePath(path: string): Target | undefined {
  const parts = path.replace(/^\/+/, '').split('/');
  const [head, run, third, ...rest] = parts;
  if (head !== 'runs' || run === undefined || third === undefined || !RUN.test(run)) {
    return undefined;
  }
  if (parts.some((part) => part === '' || part === '.' || part === '..' || part.includes('\0'))) {
    return undefined;
  }
  if (rest.length === 0) {
    return third.endsWith('.md') ? { kind: 'report', run } : undefined;
  }
  const name = rest.join('/');
  if (third === 'artifacts') {
    return { kind: 'artifact', run, name };
  }
  return third === 'steps' && rest.length === 1 ? { kind: 'step', run, path: name } : undefined;
}

/** The path by which the server knows a text. */
export function serverPath(target: Exclude<Target, { kind: 'artifact' }>): string {
  return target.kind === 'report' ? `/runs/${target.run}/report.md` : `/runs/${target.run}/steps/${target.path}`;
}

/** The path of a report whose tab shall carry the analyzed file's name. */
export function reportPath(run: string, fileName: string): string {
  const label = fileName.replace(/[/\\\0]/g, '_').slice(0, 120);
  return `/runs/${run}/${label === '' ? 'report' : label}.md`;
}

/** The path of an artifact's bytes. */
export function artifactPath(run: string, name: string): string {
  return `/runs/${run}/artifacts/${name}`;
}

/** The last part of a path or URI (of `untitled:Untitled-1` too), decoded as far as it can be. */
export function baseName(uri: string): string {
  const last = uri.replace(/^untitled:/, '').replace(/[/\\]+$/, '').split(/[/\\]/).pop() ?? uri;
  try {
    return decodeURIComponent(last);
  } catch {
    return last;
  }
}
