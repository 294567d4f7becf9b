// Package outbox writes things to one destination, one after another, until each is written or not
// worth another try: commit statuses and comments to a forge, events to a receiver.
//
// Terms. An Outbox is the way to one destination, and remembers its last answer: not before a time,
// or that it denies the token. An Entry is one thing to write, with its tries so far. Entries
// belong to their owner: it keeps them, in a journal or in memory, and knows their current text.
// The worker is the one goroutine that calls Work; nothing else writes to the destination.
//
// How it works: Work calls its owner for the next entry. The owner offers all open entries to Pick,
// which returns the first in the owner's order among those that may be tried now. Work passes it to
// the owner's write, and that ends in Succeeded or Failed. If nothing may be tried yet, Work waits
// for the earliest, or for Nudge.
//
// Rules, and why:
//
//   - A caller that wants something written never waits. It changes its own state and nudges; many
//     nudges are one.
//   - The newest text is the one to write. An entry whose text changed during the write is not
//     done: its owner calls Failed without an entry, and the next Pick offers the new text with
//     tries of its own.
//   - The destination's answer applies to all entries: when to retry, and that it denies the token,
//     which no other entry would change. A fault of one entry delays only that entry, so that it
//     does not delay other entries. An owner that wants its order kept offers only its first entry.
//   - A denied token is never a reason to give an entry up. A person fixes it in time; until then
//     one try stands for all.
//   - An entry is given up when the destination refuses it for good, or after as many tries as it
//     is worth. It stays with its owner and can be tried again by Reset.
//   - Limits belong to the destination: each request waits for its turn with Wait, also the second
//     one of an entry, and two outboxes may share a limit.
//   - A stop loses nothing that the owner keeps. After Work has ended with its context, the owner
//     calls it again to drain: it then ends when nothing is left, or nothing that can be done in
//     time. No goroutine outlives the call.
package outbox
