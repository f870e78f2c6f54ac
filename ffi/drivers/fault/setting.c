/* SPDX-License-Identifier: BSD-3-Clause */
#include "drivers/fault/setting.h"

#include <mpimcast/mmc.h>
#include <string.h>

#include "core/wire/header.h"
#include "support/error.h"
#include "support/gilbert.h"

#define DELAY_US_MAX 10000000
#define STALL_MS_MAX 10000

/* How many digits behind a probability's decimal point count; others are ignored. */
#define FRACTION_DIGITS 9

#define ALL_KINDS ((1u << MMC_TRAFFIC_COUNT) - 1)

/* A part of the setting's text; `at` is NULL if the text has no further part. */
struct span {
	const char *at;
	size_t length;
};

/*
 * Returns the part of `rest` before the first `separator`, or all of it if there is
 * none. `rest` becomes what follows the separator.
 */
static struct span cut(struct span *rest, char separator)
{
	const char *found = memchr(rest->at, separator, rest->length);
	struct span part = *rest;

	if (found == NULL) {
		*rest = (struct span){ .at = NULL };
		return part;
	}
	part.length = (size_t)(found - rest->at);
	rest->at = found + 1;
	rest->length -= part.length + 1;
	return part;
}

static bool equals(struct span span, const char *word)
{
	return span.length == strlen(word) &&
	       memcmp(span.at, word, span.length) == 0;
}

/* ---- values -------------------------------------------------------------- */

static bool read_number(struct span span, uint64_t max, uint64_t *number)
{
	uint64_t read = 0;

	for (size_t i = 0; i < span.length; i++) {
		uint64_t digit = (uint64_t)(span.at[i] - '0');

		if (digit > 9 || digit > max || read > (max - digit) / 10)
			return false;
		read = read * 10 + digit;
	}
	*number = read;
	return span.length > 0;
}

/*
 * Reads a probability by hand: strtod() would expect the decimal point of the user's
 * locale.
 */
static bool read_probability(struct span span, void *field, uint32_t rank)
{
	uint64_t whole, fraction = 0, one = 1;

	(void)rank;
	if (!read_number(cut(&span, '.'), 1, &whole))
		return false;
	if (span.at != NULL && span.length == 0)
		return false;
	for (size_t i = 0; i < span.length; i++) {
		if (span.at[i] < '0' || span.at[i] > '9')
			return false;
		if (i >= FRACTION_DIGITS)
			continue;
		fraction = fraction * 10 + (uint64_t)(span.at[i] - '0');
		one *= 10;
	}
	if (whole == 1 && fraction > 0)
		return false;
	*(uint64_t *)field = ((whole * one + fraction) << 32) / one;
	return true;
}

static bool read_period(struct span span, void *field, uint32_t rank)
{
	(void)rank;
	return read_number(span, MMC_GILBERT_PERIOD_MAX, field) &&
	       *(uint64_t *)field > 0;
}

static bool read_delay(struct span span, void *field, uint32_t rank)
{
	(void)rank;
	return read_number(span, DELAY_US_MAX, field);
}

static bool read_stall(struct span span, void *field, uint32_t rank)
{
	(void)rank;
	return read_number(span, STALL_MS_MAX, field);
}

static bool read_seed(struct span span, void *field, uint32_t rank)
{
	(void)rank;
	return read_number(span, UINT64_MAX, field);
}

/* Reads ranks, and writes whether `rank` is one of them. */
static bool read_ranks(struct span span, void *field, uint32_t rank)
{
	bool *applies = field;

	*applies = false;
	while (span.at != NULL) {
		uint64_t number;

		if (!read_number(cut(&span, '+'), UINT32_MAX, &number))
			return false;
		if (number == rank)
			*applies = true;
	}
	return true;
}

static bool read_dir(struct span span, void *field, uint32_t rank)
{
	(void)rank;
	*(bool *)field = equals(span, "tx");
	return equals(span, "tx") || equals(span, "rx");
}

static bool read_kinds(struct span span, void *field, uint32_t rank)
{
	uint32_t kinds = 0;

	(void)rank;
	while (span.at != NULL) {
		struct span word = cut(&span, '+');

		if (equals(word, "multicast"))
			kinds |= 1u << MMC_TRAFFIC_MULTICAST;
		else if (equals(word, "control"))
			kinds |= 1u << MMC_TRAFFIC_CONTROL;
		else if (equals(word, "repair"))
			kinds |= 1u << MMC_TRAFFIC_REPAIR;
		else if (equals(word, "all"))
			kinds = ALL_KINDS;
		else
			return false;
	}
	*(uint32_t *)field = kinds;
	return true;
}

/* ---- clauses ------------------------------------------------------------- */

struct key {
	const char *name;
	const char *choices; /* what the value may be, for error texts */
	size_t offset;	     /* of the key's field in the clause */
	/*
	 * Reads the value `span` into `field`, as it applies to `rank`. Returns false
	 * if the value is not allowed.
	 */
	bool (*read)(struct span span, void *field, uint32_t rank);
};

#define FIELD(field) offsetof(struct mmc_fault_clause, field)
#define PROBABILITY "a number from 0 to 1"

static const struct key keys[] = {
	{ "loss", PROBABILITY, FIELD(loss), read_probability },
	{ "loss_period", "1 to 1000000 datagrams", FIELD(loss_period),
	  read_period },
	{ "dup", PROBABILITY, FIELD(dup), read_probability },
	{ "reorder", PROBABILITY, FIELD(reorder), read_probability },
	{ "corrupt", PROBABILITY, FIELD(corrupt), read_probability },
	{ "delay_us", "0 to 10000000 microseconds", FIELD(delay_us),
	  read_delay },
	{ "stall_ms", "0 to 10000 milliseconds", FIELD(stall_ms), read_stall },
	{ "seed", "a number from 0 to 2^64 - 1", FIELD(seed), read_seed },
	{ "rank", "ranks joined by '+'", FIELD(applies), read_ranks },
	{ "dir", "rx or tx", FIELD(tx), read_dir },
	{ "kind", "multicast, control, repair joined by '+', or all",
	  FIELD(kinds), read_kinds },
};

#define NKEYS (sizeof(keys) / sizeof(keys[0]))

/* The two arguments that printf()'s "%.*s" takes. */
#define SPAN(span) (int)(span).length, (span).at

/* Returns the index of the key in `keys`, or NKEYS if there is no such key. */
static size_t find_key(struct span name)
{
	size_t i = 0;

	while (i < NKEYS && !equals(name, keys[i].name))
		i++;
	return i;
}

/*
 * Reads one `key=value` of a clause. Bit i of `seen` says that the clause has had key i
 * before.
 */
static int parse_pair(struct span pair, uint32_t rank, uint32_t *seen,
		      struct mmc_fault_clause *clause)
{
	struct span value = pair;
	struct span name = cut(&value, '=');
	size_t i = find_key(name);

	if (i == NKEYS) {
		mmc_error_set("FAULT: unknown key '%.*s'; the keys are loss, "
			      "loss_period, dup, reorder, corrupt, delay_us, "
			      "stall_ms, seed, "
			      "rank, dir, kind",
			      SPAN(name));
		return -MMC_EINVAL;
	}
	if (*seen & 1u << i) {
		mmc_error_set("FAULT: '%s' appears twice in one clause",
			      keys[i].name);
		return -MMC_EINVAL;
	}
	*seen |= 1u << i;
	if (value.at == NULL ||
	    !keys[i].read(value, (char *)clause + keys[i].offset, rank)) {
		mmc_error_set("FAULT: '%.*s': '%s' must be %s", SPAN(pair),
			      keys[i].name, keys[i].choices);
		return -MMC_EINVAL;
	}
	return 0;
}

static int parse_clause(struct span rest, uint32_t rank,
			struct mmc_fault_clause *clause)
{
	uint32_t seen = 0;

	*clause = (struct mmc_fault_clause){
		.kinds = 1u << MMC_TRAFFIC_MULTICAST | 1u << MMC_TRAFFIC_REPAIR,
		.applies = true,
	};
	while (rest.at != NULL) {
		int rv = parse_pair(cut(&rest, ','), rank, &seen, clause);

		if (rv < 0)
			return rv;
	}
	if (!mmc_gilbert_is_valid(clause->loss, clause->loss_period)) {
		mmc_error_set("FAULT: with 'loss_period' N, 'loss' may be "
			      "N / (N + 1) at most");
		return -MMC_EINVAL;
	}
	if (clause->stall_ms > 0 && clause->tx) {
		mmc_error_set("FAULT: 'stall_ms' delays what is received; it "
			      "cannot be combined with 'dir=tx'");
		return -MMC_EINVAL;
	}
	return 0;
}

int mmc_fault_parse(const char *text, uint32_t rank,
		    struct mmc_fault_setting *setting)
{
	struct span rest = { .at = text, .length = strlen(text) };
	struct mmc_fault_setting read = { .nclauses = 0 };

	if (rest.length >= MMC_FAULT_SIZE) {
		mmc_error_set("FAULT: the setting has more than %d characters",
			      MMC_FAULT_SIZE - 1);
		return -MMC_EINVAL;
	}
	while (*text != '\0' && rest.at != NULL) {
		int rv;

		if (read.nclauses == MMC_FAULT_CLAUSES_MAX) {
			mmc_error_set(
				"FAULT: the setting has more than %d clauses",
				MMC_FAULT_CLAUSES_MAX);
			return -MMC_EINVAL;
		}
		rv = parse_clause(cut(&rest, ';'), rank,
				  &read.clauses[read.nclauses]);
		if (rv < 0)
			return rv;
		read.nclauses++;
	}
	*setting = read;
	return 0;
}

int mmc_fault_check(const char *fault)
{
	struct mmc_fault_setting setting;

	return mmc_fault_parse(fault, 0, &setting);
}
