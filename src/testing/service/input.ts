import type { z } from 'zod';
import { errorMap, formatPath } from '../../common/messages.ts';
import { endpoints } from '../../endpoints.ts';
import type { ApiErrorItem } from '../../schemas/api-error.ts';
import { DAY_MS, MAX_SHIPPING_AGE_DAYS, type TrackerRequest } from '../../schemas/tracker.ts';
import { rejection, ServiceError } from './http.ts';

// All countries of ISO 3166-1, and Kosovo (`XKX`); `Intl` has no alpha-3 codes. Each entry begins with the two letters of the
// alpha-2 code and ends with the three letters of the alpha-3 code: `AFG` is AF and AFG, and `ADAND` is AD and AND.
const COUNTRIES = `
  ADAND AEARE AFG AGATG AIA ALB AMARM AOAGO AQATA ARG ASM ATAUT AUS AWABW AXALA AZE BABIH BBBRB
  BDBGD BEL BFA BGR BHR BIBDI BJBEN BLM BMU BNBRN BOL BQBES BRA BSBHS BTN BVT BWA BYBLR BZBLZ
  CAN CCK CDCOD CFCAF CGCOG CHE CIV CKCOK CLCHL CMR CNCHN COL CRI CUB CVCPV CWCUW CXR CYP CZE
  DEU DJI DKDNK DMA DOM DZA ECU EEEST EGY EHESH ERI ESP ETH FIN FJI FKFLK FMFSM FOFRO FRA GAB
  GBR GDGRD GEO GFGUF GGY GHA GIB GLGRL GMB GNGIN GPGLP GQGNQ GRC GSSGS GTM GUM GWGNB GYGUY HKG
  HMD HND HRV HTI HUN IDN IEIRL ILISR IMN IND IOT IQIRQ IRN ISL ITA JEY JMJAM JOR JPN KEN KGZ
  KHM KIR KMCOM KNA KPPRK KRKOR KWT KYCYM KZKAZ LAO LBN LCA LIE LKA LRLBR LSO LTU LUX LVA LYLBY
  MAR MCO MDA MEMNE MFMAF MGMDG MHL MKD MLI MMR MNG MOMAC MPMNP MQMTQ MRT MSR MTMLT MUS MVMDV
  MWI MXMEX MYS MZMOZ NAM NCL NER NFK NGA NIC NLD NOR NPL NRU NUNIU NZL OMN PAN PER PFPYF PGPNG
  PHL PKPAK PLPOL PMSPM PNPCN PRI PSE PTPRT PWPLW PYPRY QAT REU ROU RSSRB RUS RWA SAU SBSLB
  SCSYC SDN SESWE SGP SHN SISVN SJM SKSVK SLE SMR SNSEN SOM SRSUR SSD STP SVSLV SXM SYR SZSWZ
  TCA TDTCD TFATF TGO THA TJK TKL TLS TMTKM TNTUN TON TRTUR TTO TVTUV TWN TZA UAUKR UGA UMI USA
  UYURY UZB VAT VCT VEN VGB VIR VNM VUT WFWLF WSM XKX YEM YTMYT ZAF ZMB ZWE
`;

const alpha2ByCode = new Map<string, string>();
for (const codes of COUNTRIES.trim().split(/\s+/)) {
  const alpha2 = codes.slice(0, 2);
  alpha2ByCode.set(alpha2, alpha2);
  alpha2ByCode.set(codes.slice(-3), alpha2);
}

/** Converts an alpha-2 or alpha-3 code in upper case to alpha-2 as in responses; `undefined` for any other text. */
export function toAlpha2(code: string): string | undefined {
  return alpha2ByCode.get(code);
}

/** Returns the calendar day of an ISO 8601 date: in UTC where the date names a zone, else as written. */
export function toDay(date: string): string {
  const instant = /^[^T]*T.*(?:Z|[+-]\d{2}:?\d{2})$/i.test(date) ? Date.parse(date) : Number.NaN;
  return Number.isNaN(instant) ? date.slice(0, 10) : new Date(instant).toISOString().slice(0, 10);
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw rejection(400, 'parsing_error', 'The body is not valid JSON.');
  }
}

function toErrorItem(issue: z.core.$ZodIssue): ApiErrorItem {
  const isMissing = issue.input === undefined && issue.code === 'invalid_type';
  if (!isMissing) return { code: 'validation_error', message: issue.message };
  return { code: 'missing_mandatory_field', message: `\`${formatPath(issue.path)}\` is missing.` };
}

export function validate<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const parsed = schema.safeParse(value, { error: errorMap('body'), reportInput: true });
  if (!parsed.success) throw new ServiceError(400, parsed.error.issues.map(toErrorItem));
  return parsed.data;
}

type DatedPlace = Pick<TrackerRequest, 'shippingDate' | 'originCountryCode' | 'destinationCountryCode'>;

/** @param value - as it was sent, because the schema turns lower case into upper case (docs/service.md 3.4) */
function findPlaceErrors(input: DatedPlace, value: unknown, nowMs: number): ApiErrorItem[] {
  const errors: ApiErrorItem[] = [];
  for (const field of ['originCountryCode', 'destinationCountryCode'] as const) {
    const message = `\`${field}\` is not a country code of ISO 3166-1 in upper case.`;
    if (input[field] !== undefined && toAlpha2(Object(value)[field]) === undefined)
      errors.push({ code: 'validation_error', message });
  }
  const { shippingDate } = input;
  const oldestDay = new Date(nowMs - MAX_SHIPPING_AGE_DAYS * DAY_MS).toISOString().slice(0, 10);
  if (shippingDate !== undefined && toDay(shippingDate) < oldestDay)
    errors.push({ code: 'shipping_date_outdated', message: '`shippingDate` is older than 180 days.' });
  return errors;
}

function isOutdated(issue: z.core.$ZodIssue): boolean {
  return issue.code === 'custom' && issue.params?.['code'] === 'shipping_date_outdated';
}

/** Checks a value against all rules of an endpoint. The fake's clock decides how old a date is, not the machine's. */
export function validateAt<T extends DatedPlace>(nowMs: number, schema: z.ZodType<T>, value: unknown): T {
  const { shippingDate } = Object(value);
  // The schema uses the machine's clock. If the schema finds the date too old, check the other rules with today's date.
  const isOld = schema.safeParse(value).error?.issues.some(isOutdated) === true;
  const today = new Date().toISOString();
  const input = isOld
    ? { ...validate(schema, { ...Object(value), shippingDate: today }), shippingDate }
    : validate(schema, value);
  const errors = findPlaceErrors(input, value, nowMs);
  if (errors.length > 0) throw new ServiceError(400, errors);
  return input;
}

export function validateTrackerInput(nowMs: number, value: unknown): TrackerRequest {
  return validateAt<TrackerRequest>(nowMs, endpoints['trackers.create'].request.body, value);
}
