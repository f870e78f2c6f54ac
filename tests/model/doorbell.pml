/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The doorbell of ffi/offload/ring.h as a model for spin: a producer puts NENTRIES
 * entries in a ring one by one, and a consumer takes them and sleeps in between. Each has
 * a buffer of stores that it has made and the other one does not see yet, as processors
 * have: a store becomes visible at any later time, but before a later store of the same
 * processor, and a processor sees its own. So a store may be delayed past a later load,
 * which is what a fence between the two forbids: the processor waits until its buffer is
 * empty.
 *
 * Without PRODUCER_FENCE, without CONSUMER_FENCE or without LOOK, spin finds a course in
 * which the consumer sleeps for ever beside an entry.
 */

#ifndef NENTRIES
#define NENTRIES 3
#endif

byte nproduced; /* as both see it */
bit armed;	/* as both see it */
byte bell;	/* rings that the consumer has not taken: the kernel keeps them */
bool sleeps;
byte nconsumed; /* of the consumer; there is room for all entries */

/* Stores that are not visible yet: the new values, in order. */
chan produced_late = [NENTRIES] of { byte };
chan armed_late = [2] of { bit };

/* Makes stores visible, whenever it likes. */
active proctype Memory()
{
	byte number;
	bit value;

end:	do
	:: atomic { produced_late?number -> nproduced = number }
	:: atomic { armed_late?value -> armed = value }
	od
}

active proctype Producer()
{
	byte number = 0;
	bit seen;

	do
	:: number < NENTRIES ->
		number++;
		produced_late!number;		/* mmc_ring_produce() */
#ifdef PRODUCER_FENCE
		empty(produced_late);
#endif
		seen = armed;			/* mmc_ring_must_ring() */
		if
		:: seen ->
			/* An exchange is done in memory, but overtakes stores. */
			atomic { seen = armed; armed = 0 }
			if
			:: seen -> bell++
			:: else
			fi
		:: else
		fi
	:: else -> break
	od
}

active proctype Consumer()
{
	do
	:: nconsumed == NENTRIES -> break
	:: nconsumed < NENTRIES && nconsumed < nproduced -> nconsumed++
	:: nconsumed < NENTRIES && nconsumed >= nproduced ->
		armed_late!1;			/* mmc_ring_arm() */
#ifdef CONSUMER_FENCE
		empty(armed_late);
#endif
		if
#ifdef LOOK
		:: nconsumed < nproduced /* it looks once more */
		:: nconsumed >= nproduced ->
#else
		:: true ->
#endif
			sleeps = true;
			atomic { bell > 0 -> bell = 0 }
			sleeps = false
		fi
	od
}
