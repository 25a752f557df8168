import { describe, expect, it } from 'vitest';
import { findRoute } from '../../../src/testing/service/http.ts';

describe('findRoute', () => {
  it.each([
    ['GET', '/public/v1/trackers', 'trackers.list', {}],
    ['POST', '/public/v1/trackers/bulk', 'trackers.createBulk', {}],
    ['GET', '/public/v1/trackers/bulk', 'trackers.get', { trackerId: 'bulk' }],
    ['GET', '/public/v1/trackers/a%2Fb', 'trackers.get', { trackerId: 'a/b' }],
    [
      'GET',
      '/public/v1/trackers/search/AB%2F1/results',
      'trackers.resultsByTrackingNumber',
      { trackingNumber: 'AB/1' },
    ],
    ['GET', '/public/v1/trackers/search/results', 'trackers.results', { trackerId: 'search' }],
    ['GET', '/v1/couriers', 'couriers.list', {}],
    ['GET', '/any/prefix/v2/couriers', 'couriers.list', {}],
  ])('%s %s → %s', (method, path, endpoint, params) => {
    expect(findRoute(method, path)).toEqual({ endpoint, params });
  });

  it.each([
    ['an unknown path', '/public/v1/nothing'],
    ['no version segment', '/couriers'],
    ['a trailing slash', '/public/v1/couriers/'],
    ['an empty id', '/public/v1/trackers//results'],
    ['the base alone', '/public/v1'],
  ])('%s → no route and no other method', (_, path) => {
    expect(findRoute('GET', path)).toEqual({ allowedMethods: [] });
  });

  it('a method that a path has not → the methods it has', () => {
    expect(findRoute('DELETE', '/public/v1/trackers')).toEqual({ allowedMethods: ['POST', 'GET'] });
  });

  it('a given base path → found below it, and only there', () => {
    expect(findRoute('GET', '/api/couriers', '/api')).toMatchObject({ endpoint: 'couriers.list' });
    expect(findRoute('GET', '/public/v1/couriers', '/api')).toEqual({ allowedMethods: [] });
    expect(findRoute('GET', '/couriers', '')).toMatchObject({ endpoint: 'couriers.list' });
  });

  it('broken percent-encoding → refused with 400', () => {
    expect(() => findRoute('GET', '/public/v1/trackers/%zz')).toThrow(
      expect.objectContaining({ status: 400 }),
    );
  });
});
