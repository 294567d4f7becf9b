// Package forge contains everything that weir sends to a forge and reads from it. A forge is a
// server that keeps Git repositories and what people say about their changes: GitHub, GitLab,
// Gitea, Forgejo. Nothing else imports the forges' libraries or holds their tokens.
//
// # Terms
//
// A commit status is a verdict on a commit, under a name, its context; the newest of a context is
// the valid one. A pull request proposes commits; GitLab calls it a merge request, and its comments
// notes. A delivery is one request of a webhook, a hint is the change that it claims. A command is
// a comment that instructs weir.
//
// # A forge is a profile and a client
//
// A Profile holds the properties of every forge of a kind: links, refs of pull requests, limits,
// headers of webhooks. The rows are in profiles.go. No code outside this package compares kinds of
// forges. A new kind needs a row, a client in a file of its own and, if its webhooks have a form of
// their own, a function in decode.go.
//
// New returns a Client of one repository. Its users declare a smaller interface of their own. Each
// client is one type on the forge's own library (go-github, GitLab's client-go, Gitea's SDK), which
// knows addresses, documents and parameters. The rules for all forges are in two layers, below the
// libraries and above them:
//
//   - The transport, package forgehttp, talks to the forge's host only. It observes rate limits,
//     makes conditional requests, bounds how much of an answer is passed on, and turns every
//     refusal into an Error that shows no token.
//   - A caller makes each call within 30 seconds. It tries a read up to three times if that may
//     help, and a write once, because its answer may be lost after it was done. For a refusal it
//     says what a person can do: which scope or permission is missing, or that the repository is
//     invisible to this token.
//
// So the libraries' own handling of these is turned off: go-github's account of limits, client-go's
// retries and limiter. Gitea's SDK keeps a context in its client, so each call makes a new client.
// It gets an empty version, because it would otherwise ask the server for its version.
//
// weir uses its own code if a library breaks a promise. client-go ends the process if a list of
// merge requests contains a null, so that list is decoded here. Only GraphQL returns the identity
// of a GitHub App. Deliveries are decoded here too: the few fields that weir believes are the same
// on all forges, and nothing else of a delivery should be kept.
//
// # Rules
//
//   - weir obeys nothing that a webhook says. A delivery proves that its sender knows a secret, and
//     names what to read again: Git then reads a source, and a Client reads a pull request. The
//     text of a comment in a delivery is used for one comparison with the text that the Client
//     reads. If the two differ, weir refuses the command. If they are equal, that confirms the
//     command if the forge shows no edits of the comment. So a sender who knows the secret can get
//     commands refused. The command itself, its author and the author's permission always come from
//     the forge.
//   - A list is read in pages, at most a thousand items of it. Reading it again costs the fewest
//     requests that can show that nothing changed: a conditional one for each page, or a single one
//     if the forge says how many items exist.
//   - Text by outsiders (titles, names, comments) is bounded before it is kept. A name that is too
//     long is left out, never cut, because a cut name would name something else.
//   - weir asks for a user's rights at the moment of a command; an answer about another user, or no
//     answer, is no permission.
package forge
