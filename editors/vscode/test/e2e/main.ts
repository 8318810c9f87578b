/**
 * Runs the scenarios, each on an editor of its own or on one that its group shares, and prints `N passed, N failed`.
 *
 * Arguments name scenarios to run (by a part of the name); none runs all.
 */
import { spawnSync } from 'node:child_process';
import { findParts } from './parts';
import { edges } from './edges';
import { faults } from './faults';
import { journeys } from './journeys';
import { languages } from './languages';
import { outputs } from './outputs';
import { models } from './models';
import type { Group } from './group';

async function main(): Promise<number> {
  const parts = findParts();
  const wanted = process.argv.slice(2);
  const groups: Group[] = [journeys(parts), edges(parts), outputs(parts), faults(parts), models(parts), languages(parts)].flat();
  // The sandbox's Python is provisioned ahead: no scenario is about how long a download takes.
  const built = spawnSync(parts.binary, ['sandbox', 'build', '--sandbox', 'process'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  if (built.status !== 0) {
    throw new Error(`The process sandbox could not be provisioned: ${built.stdout}${built.stderr}`);
  }
  let passed = 0;
  const failed: string[] = [];
  for (const group of groups) {
    const scenarios = Object.entries(group.scenarios).filter(([name]) => wanted.length === 0 || wanted.some((part) => `${group.name}: ${name}`.includes(part)));
    if (scenarios.length === 0) {
      continue;
    }
    const bench = await group.start().catch((error: unknown) => {
      console.error(error);
      return undefined;
    });
    let calm = true;
    for (const [name, scenario] of scenarios) {
      const began = Date.now();
      const title = `${group.name}: ${name}`;
      try {
        if (bench === undefined) {
          throw new Error('the editor did not start');
        }
        await bench.calm(!calm);
        calm = false;
        await scenario(bench);
        await bench.everyClickHadItsCommand();
        calm = true;
        passed += 1;
        console.log(`ok      ${title} (${((Date.now() - began) / 1000).toFixed(1)} s)`);
      } catch (error) {
        failed.push(title);
        console.log(`FAILED  ${title}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
        const picture = await bench?.screenshot(`failed-${title.replace(/\W+/g, '-')}`).catch(() => undefined);
        console.log(`        window: ${picture ?? 'no picture'}`);
      }
    }
    await bench?.stop().catch((error: unknown) => {
      failed.push(`${group.name}: the end`);
      console.log(`FAILED  ${group.name}: the editor did not end: ${String(error)}`);
    });
  }
  console.log(`${passed} passed, ${failed.length} failed`);
  return failed.length === 0 && passed > 0 ? 0 : 1;
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    console.log('0 passed, 1 failed');
    process.exit(1);
  },
);
