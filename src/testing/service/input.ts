// Specification: service.md 2.1; public contract, "Requests"
import type { z } from 'zod';
import { errorMap, formatPath } from '../../common/validation.ts';
import { endpoints } from '../../endpoints.ts';
import { latestInstant, type TrackerRequest } from '../../schemas/tracker.ts';
import { rejection, ServiceError, type ServiceErrorItem } from './http.ts';

const DAY_MS = 86_400_000;
const MAX_SHIPPING_AGE_DAYS = 180;

/**
 * ISO 3166-1, alpha-2 followed by alpha-3, plus `XK` for Kosovo, which couriers use.
 * Kept here because `Intl` knows no alpha-3 codes.
 */
const COUNTRIES = `
  ADAND AEARE AFAFG AGATG AIAIA ALALB AMARM AOAGO AQATA ARARG ASASM ATAUT AUAUS AWABW AXALA
  AZAZE BABIH BBBRB BDBGD BEBEL BFBFA BGBGR BHBHR BIBDI BJBEN BLBLM BMBMU BNBRN BOBOL BQBES
  BRBRA BSBHS BTBTN BVBVT BWBWA BYBLR BZBLZ CACAN CCCCK CDCOD CFCAF CGCOG CHCHE CICIV CKCOK
  CLCHL CMCMR CNCHN COCOL CRCRI CUCUB CVCPV CWCUW CXCXR CYCYP CZCZE DEDEU DJDJI DKDNK DMDMA
  DODOM DZDZA ECECU EEEST EGEGY EHESH ERERI ESESP ETETH FIFIN FJFJI FKFLK FMFSM FOFRO FRFRA
  GAGAB GBGBR GDGRD GEGEO GFGUF GGGGY GHGHA GIGIB GLGRL GMGMB GNGIN GPGLP GQGNQ GRGRC GSSGS
  GTGTM GUGUM GWGNB GYGUY HKHKG HMHMD HNHND HRHRV HTHTI HUHUN IDIDN IEIRL ILISR IMIMN ININD
  IOIOT IQIRQ IRIRN ISISL ITITA JEJEY JMJAM JOJOR JPJPN KEKEN KGKGZ KHKHM KIKIR KMCOM KNKNA
  KPPRK KRKOR KWKWT KYCYM KZKAZ LALAO LBLBN LCLCA LILIE LKLKA LRLBR LSLSO LTLTU LULUX LVLVA
  LYLBY MAMAR MCMCO MDMDA MEMNE MFMAF MGMDG MHMHL MKMKD MLMLI MMMMR MNMNG MOMAC MPMNP MQMTQ
  MRMRT MSMSR MTMLT MUMUS MVMDV MWMWI MXMEX MYMYS MZMOZ NANAM NCNCL NENER NFNFK NGNGA NINIC
  NLNLD NONOR NPNPL NRNRU NUNIU NZNZL OMOMN PAPAN PEPER PFPYF PGPNG PHPHL PKPAK PLPOL PMSPM
  PNPCN PRPRI PSPSE PTPRT PWPLW PYPRY QAQAT REREU ROROU RSSRB RURUS RWRWA SASAU SBSLB SCSYC
  SDSDN SESWE SGSGP SHSHN SISVN SJSJM SKSVK SLSLE SMSMR SNSEN SOSOM SRSUR SSSSD STSTP SVSLV
  SXSXM SYSYR SZSWZ TCTCA TDTCD TFATF TGTGO THTHA TJTJK TKTKL TLTLS TMTKM TNTUN TOTON TRTUR
  TTTTO TVTUV TWTWN TZTZA UAUKR UGUGA UMUMI USUSA UYURY UZUZB VAVAT VCVCT VEVEN VGVGB VIVIR
  VNVNM VUVUT WFWLF WSWSM XKXKX YEYEM YTMYT ZAZAF ZMZMB ZWZWE
`;

const alpha2ByCode = new Map<string, string>();
for (const pair of COUNTRIES.trim().split(/\s+/)) {
  const alpha2 = pair.slice(0, 2);
  alpha2ByCode.set(alpha2, alpha2);
  alpha2ByCode.set(pair.slice(2), alpha2);
}

/** The alpha-2 code the service responds with, for an alpha-2 or alpha-3 code in any case; `undefined` for no country. */
export function toAlpha2(code: string): string | undefined {
  return alpha2ByCode.get(code.toUpperCase());
}

/** The calendar day of a date as the service compares it: UTC where the date names a zone, else as written. */
export function dayOf(date: string): string {
  const hasZone = /T.*(?:Z|[+-]\d{2}(?::?\d{2})?)$/i.test(date);
  const zone = /T/i.test(date) ? 'Z' : 'T00Z';
  const instant = latestInstant(hasZone ? date : date + zone);
  return instant === undefined ? date.slice(0, 10) : new Date(instant).toISOString().slice(0, 10);
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw rejection(400, 'parsing_error', 'The body is not valid JSON.');
  }
}

function toErrorItem(issue: z.core.$ZodIssue): ServiceErrorItem {
  const isMissing = issue.input === undefined && issue.code === 'invalid_type';
  if (!isMissing) return { code: 'validation_error', message: issue.message };
  return { code: 'missing_mandatory_field', message: `\`${formatPath(issue.path)}\` is missing.` };
}

function safeParse<Schema extends z.ZodType>(schema: Schema, value: unknown) {
  return schema.safeParse(value, { error: errorMap('body'), reportInput: true });
}

/** Checks a value against the rules of an endpoint that need no clock; throws one entry per broken rule. */
export function validated<Schema extends z.ZodType>(schema: Schema, value: unknown): z.output<Schema> {
  const parsed = safeParse(schema, value);
  if (!parsed.success) throw new ServiceError(400, parsed.error.issues.map(toErrorItem));
  return parsed.data;
}

/** The fields whose rules depend on the clock or on the list of countries. */
interface DatedPlace {
  readonly shippingDate?: string | undefined;
  readonly originCountryCode?: string | undefined;
  readonly destinationCountryCode?: string | undefined;
}

function brokenPlaceRules(input: DatedPlace, nowMs: number): ServiceErrorItem[] {
  const errors: ServiceErrorItem[] = [];
  for (const field of ['originCountryCode', 'destinationCountryCode'] as const) {
    const code = input[field];
    if (code !== undefined && toAlpha2(code) === undefined)
      errors.push({ code: 'validation_error', message: `\`${field}\` is not an ISO 3166-1 country.` });
  }
  const { shippingDate } = input;
  const oldestDay = new Date(nowMs - MAX_SHIPPING_AGE_DAYS * DAY_MS).toISOString().slice(0, 10);
  if (shippingDate !== undefined && dayOf(shippingDate) < oldestDay)
    errors.push({ code: 'shipping_date_outdated', message: '`shippingDate` is older than 180 days.' });
  return errors;
}

/** Checks a value against all rules of an endpoint; its date's age by the fake's clock, not by the machine's. */
export function validatedAt<Input extends DatedPlace>(
  nowMs: number,
  schema: z.ZodType<Input>,
  value: unknown,
): Input {
  const parsed = safeParse(schema, value);
  const isOutdated = (issue: z.core.$ZodIssue) =>
    issue.code === 'custom' && issue.params?.['code'] === 'shipping_date_outdated';
  const issues = parsed.error?.issues.filter((issue) => !isOutdated(issue)) ?? [];
  if (issues.length > 0) throw new ServiceError(400, issues.map(toErrorItem));
  // Proved above: the value keeps every rule but perhaps the age, and these schemas only leave nulls out.
  const input = parsed.success ? parsed.data : (withoutNulls(value) as Input);
  const errors = brokenPlaceRules(input, nowMs);
  if (errors.length > 0) throw new ServiceError(400, errors);
  return input;
}

function withoutNulls(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (_key, field) => field ?? undefined);
}

export function validatedTrackerInput(nowMs: number, value: unknown): TrackerRequest {
  return validatedAt<TrackerRequest>(nowMs, endpoints['trackers.create'].request.body, value);
}
