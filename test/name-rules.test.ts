import { expect } from 'chai';
import { holdsReserved, lookOf, reservedWords } from '../src/base/name-rules.ts';

describe('the look-alike key of a name', () => {
  it('names that look alike have the same key', () => {
    const look = lookOf('Storm Billing');
    // Written with a capital i, small l's, a zero, Cyrillic and full-width letters, accents, and no
    // space.
    const alike = [
      'Storm BiIling',
      'STORM BlLLlNG',
      'St0rm Bi11ing',
      'Stоrm Вilling',
      'Ｓtorm-Billing',
      'Štörm Billíng',
      'stormbilling',
      'Storrn Billing',
    ];
    for (const name of alike) expect(lookOf(name), name).to.equal(look);
  });

  it('different names have different keys, in any script', () => {
    const names = [
      'Storm Billing',
      'Storm Building',
      'की',
      'का',
      'かき',
      'がぎ',
      '★',
      '☆',
      'Склад',
    ];
    expect(new Set(names.map(lookOf)).size).to.equal(names.length);
  });
});

describe('names reserved for the service', () => {
  it('reserved names contain the name of the product or of the domain of the issuer', () => {
    const reserved = reservedWords('https://auth.stormworks.co.uk');
    for (const name of [
      'Gatehouse Security',
      'Gâte-House',
      'GATEH0USE',
      'GatehouseX',
      'My StormWorks login',
    ]) {
      expect(holdsReserved(name, reserved), name).to.equal(true);
    }
    for (const name of ['Gate keeper', 'House of storms', 'Auth helper', 'Company']) {
      expect(holdsReserved(name, reserved), name).to.equal(false);
    }
  });

  it('a short name of the issuer is reserved only as a separate word', () => {
    const reserved = reservedWords('https://login.abb.example');
    expect(holdsReserved('ABB tools', reserved)).to.equal(true);
    expect(holdsReserved('Rabbit', reserved)).to.equal(false);
  });

  it('only the name of the product is reserved if the issuer has no domain name', () => {
    for (const issuer of ['http://localhost:3000', 'http://127.0.0.1:3000', 'http://[::1]:3000']) {
      expect(reservedWords(issuer), issuer).to.have.length(1);
    }
  });
});
