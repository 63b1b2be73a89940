/** The doctor and a metric report a release of Node with a known hole. */
import { expect } from 'chai';
import { holesOfNode } from '../../src/base/node-holes.ts';
import { nodeVerdict } from '../../src/doctor/nodes.ts';

describe('a release of Node with a known hole', () => {
  it('the doctor warns of it, and names the hole and the release that mends it', () => {
    for (const version of ['24.0.0', '24.9.1', '24.21.0', '24.22.0']) {
      const { status, message, remedy } = nodeVerdict(version);
      expect(status, version).to.equal('warning');
      expect(message).to.include(version).and.include('CVE-2026-111497').and.include('Brotli');
      expect(remedy).to.include('Node 24.22.1 or later');
    }
  });

  it('the doctor accepts the release that mends it, later ones and other major versions', () => {
    for (const version of ['24.22.1', '24.22.10', '24.100.0', '25.0.0', '26.10.0']) {
      expect(nodeVerdict(version), version).to.include({ status: 'ok' });
      expect(holesOfNode(version)).to.deep.equal([]);
    }
  });
});
