/* SPDX-License-Identifier: BSD-3-Clause */
/* Implements the firmware's <stdio.h>. */
#include <stdint.h>
#include <stdio.h>

/* The text as it is written: the place of the next character, and that of the final 0. */
struct cursor {
	char *at;
	char *end;
};

static void put(struct cursor *cursor, char character)
{
	if (cursor->at < cursor->end)
		*cursor->at++ = character;
}

static void put_words(struct cursor *cursor, const char *words)
{
	while (*words != 0)
		put(cursor, *words++);
}

/* Writes a number, with leading zeros if it has fewer than `width` digits. */
static void put_number(struct cursor *cursor, uint64_t number, unsigned width)
{
	char digits[24];
	unsigned n = 0;

	do
		digits[n++] = (char)('0' + number % 10);
	while ((number /= 10) > 0);
	while (n < width && n < sizeof(digits))
		digits[n++] = '0';
	while (n > 0)
		put(cursor, digits[--n]);
}

static void put_integer(struct cursor *cursor, int integer)
{
	if (integer < 0)
		put(cursor, '-');
	put_number(cursor,
		   (uint64_t)(integer < 0 ? -(int64_t)integer : integer), 0);
}

int vsnprintf(char *restrict to, size_t size, const char *restrict format,
	      va_list arguments)
{
	struct cursor cursor = { .at = to, .end = to + size - 1 };

	while (*format != 0) {
		unsigned width = 0;
		unsigned longs = 0;

		if (*format != '%') {
			put(&cursor, *format++);
			continue;
		}
		while (*++format >= '0' && *format <= '9')
			width = width * 10 + (unsigned)(*format - '0');
		for (; *format == 'l'; format++)
			longs++;
		if (*format == 's')
			put_words(&cursor, va_arg(arguments, const char *));
		else if (*format == 'c')
			put(&cursor, (char)va_arg(arguments, int));
		else if (*format == 'd')
			put_integer(&cursor, va_arg(arguments, int));
		else if (longs > 0)
			put_number(&cursor, va_arg(arguments, uint64_t), width);
		else
			put_number(&cursor, va_arg(arguments, unsigned), width);
		format++;
	}
	*cursor.at = 0;
	return (int)(cursor.at - to);
}

int snprintf(char *restrict to, size_t size, const char *restrict format, ...)
{
	va_list arguments;
	int nbytes;

	va_start(arguments, format);
	nbytes = vsnprintf(to, size, format, arguments);
	va_end(arguments);
	return nbytes;
}
