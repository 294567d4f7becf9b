// Package outbox writes things to one destination, one after another, until each is
// written or not worth another try: commit statuses and comments to a forge, events to a
// receiver.
//
// Terms. An Outbox is the way to one destination, and remembers its last answer: not
// before a time, or that it denies the token. An Entry is one thing that is to be
// written, with the tries that it had. Entries are their owner's: it keeps them, in a
// journal or in memory, and says what each should say by now. The worker is the one
// goroutine that calls Work; nothing else writes to the destination.
//
// How it goes: Work asks its owner for the next entry. The owner offers all that are
// open to Pick, which takes the first in the owner's order among those that may be tried
// now. Work hands it to the owner's write, and that ends in Succeeded or Failed. Where
// nothing may be tried yet, Work waits for the earliest, or for Nudge.
//
// Rules, and why:
//
//   - Whoever wants something written never waits. It changes its own state and nudges;
//     many nudges are one.
//   - The newest text is the one to write. An entry whose text changed while it was
//     being written is not done: its owner hands Failed no entry, and the next Pick
//     offers the new text with tries of its own.
//   - The destination's answer holds for all entries: when to come back, and that it
//     denies the token, which no other entry would change. A fault of one entry delays
//     that one alone, so that it does not hold up the others. An owner that wants its
//     order kept offers its first entry alone.
//   - A denied token is never a reason to give an entry up. A person mends it in time;
//     until then one try stands for all.
//   - An entry is given up when the destination refuses it for good, or after as many
//     tries as it is worth. It stays with its owner and can be tried again by Reset.
//   - Limits are the destination's: each request waits for its turn with Wait, also the
//     second one of an entry, and two outboxes may share a limit.
//   - A stop loses nothing that the owner keeps. After Work has ended with its context,
//     the owner calls it again to drain: it then ends when nothing is left, or nothing
//     that there is time for. No goroutine outlives the call.
package outbox
