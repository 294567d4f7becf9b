// Package forge is all that weir says to a forge and hears from it. A forge is a server
// that keeps Git repositories and what people say about their changes: GitHub, GitLab,
// Gitea, Forgejo. Nothing else imports the forges' libraries or
// holds their tokens.
//
// # Terms
//
// A commit status is a verdict on a commit, under a name, its context; the newest of a
// context is the valid one. A pull request proposes commits; GitLab calls it a merge
// request, and its comments notes. A delivery is one request of a webhook, a hint is
// the change that it claims. A command is a comment that tells weir to do something.
//
// # A forge is a profile and a client
//
// A Profile is what holds for every forge of a kind: links, refs of pull requests, limits,
// headers of webhooks. The rows are in profiles.go. No code outside this package compares
// kinds of forges. A new kind needs a row, a client in a file of its own and, if its
// webhooks have a form of their own, a function in decode.go.
//
// New returns a Client of one repository. Those who use one ask for less, by an interface
// of their own. Each is one type on the forge's own library (go-github, GitLab's
// client-go, Gitea's SDK), which knows addresses, documents and parameters. The rules for
// all forges stand in two layers, below the libraries and above them:
//
//   - The transport, package forgehttp: the forge's host only, limits, conditional
//     requests, how much of an answer is passed on, and that every refusal is an Error
//     that shows no token.
//   - A caller makes each call: in 30 seconds, a read three times where that may help, a
//     write once, as its answer may be lost after it was done. It says of a refusal what a
//     person can do: which scope or permission is missing, or that the repository is not
//     seen with this token.
//
// So what a library does about these is turned off: go-github's own account of limits,
// client-go's repetitions and limiter. Gitea's SDK keeps a context in its client, which
// hence is made anew for each call, and gets an empty version, as it would ask the
// server for one.
//
// Own code stays where a library breaks a promise: client-go ends the process where a
// list of merge requests holds a null, so that list is decoded here; who an App of GitHub
// is, GraphQL alone tells. Deliveries are decoded here too: the few fields that are
// believed are the same on all forges, and of the rest nothing should be held.
//
// # Rules
//
//   - weir obeys nothing that a webhook says. A delivery proves that its sender knows a
//     secret, and names what to read again: Git then reads a source, and a Client reads a
//     pull request. The text of a comment in a delivery is used for one comparison with
//     the text that the Client reads. If the two differ, weir refuses the command. If they
//     are equal, that confirms the command where the forge shows no edits of the comment.
//     So whoever knows the secret can get commands refused. The command itself, its
//     author and the author's permission always come from the forge.
//   - A list is read in pages, at most a thousand items of it. Reading it again costs
//     the fewest requests that can show that nothing changed: a conditional one for
//     each page, or one where the forge says how many items there are.
//   - What strangers write (titles, names, comments) is bounded before it is kept. A name
//     that is too long is left out, never cut, as it would name something else.
//   - weir asks for a user's rights at the moment of a command; an answer about another
//     user, or no answer, is no permission.
package forge
