// Package outbox writes entries to one destination, one after another, until each is written or given up:
// commit statuses and comments to a forge, events to a receiver.
//
// Terms. An Outbox manages the writes to one destination. It remembers until when the destination refuses
// requests, and whether it denies the token. An Entry is the retry state of one thing to write. The owner
// stores its entries, in a journal or in memory, and knows their current text. The worker is the one
// goroutine that calls Work; nothing else writes to the destination.
//
// How it works: Work calls the owner's next. The owner passes all open entries to Pick, which returns the
// first entry, in the owner's order, that may be tried now. Work passes it to the owner's write, which ends
// with a call of Succeeded or Failed. If no entry may be tried yet, Work waits for the earliest, or for
// Nudge.
//
// Rules, and why:
//
//   - A caller never waits for a write. It changes its own state and calls Nudge; several calls
//     count as one.
//   - Only the newest text is written. If the text of an entry changed during the write, the entry
//     is not done: the owner calls Failed without an entry, and the next Pick offers the new text
//     with a retry state of its own.
//   - The destination's state applies to all entries: until when it refuses requests, and that it
//     denies the token. A failure of one entry delays only that entry. An owner that needs its
//     order preserved offers only its first entry.
//   - An entry is never given up because of a denied token, because a person can fix the token.
//     Until then, one attempt counts for all entries.
//   - An entry is given up if the destination rejects it permanently, or after the maximum number
//     of attempts. It stays with its owner, and Reset makes it possible to try it again.
//   - Rate limits belong to the destination: every request waits with Wait, also the second
//     request of an entry, and two outboxes can share a limit.
//   - A shutdown loses nothing that the owner stores. After Work has ended with its context, the
//     owner calls it again to drain. It then ends when nothing is left, or nothing that can be
//     done in time. No goroutine outlives the call.
package outbox
