// Package forge contains all communication with forges. A forge is a server with Git repositories and
// conversations about their changes: GitHub, GitLab, Gitea, Forgejo. No other package imports the forges'
// libraries or handles their tokens.
//
// # Terms
//
// A commit status is a verdict on a commit with a name, its context. Only the newest status of each context
// is valid. A pull request proposes commits. GitLab calls it a merge request, and its comments notes. A
// delivery is one request of a webhook, and a hint is the change that it claims to report. A command is a
// comment that instructs weir.
//
// # A forge is a profile and a client
//
// A Profile contains the properties of all forges of a kind: links, refs of pull requests, limits, headers
// of webhooks. The profiles are in profiles.go. No code outside this package compares kinds of forges. A
// new kind needs a profile, a client in its own file and, if its webhooks have their own format, a function
// in decode.go.
//
// New returns a Client for one repository. Its users declare smaller interfaces of their own. Each client
// is based on the forge's own library (go-github, GitLab's client-go, Gitea's SDK), which implements the
// API. The rules that are common to all forges are in two layers, below and above the libraries:
//
//   - The transport, package forgehttp, sends requests only to the forge's host. It observes rate
//     limits, makes conditional requests, limits the size of responses, and converts every refusal
//     into an Error without the token.
//   - A caller bounds each call to 30 seconds. It tries a read up to three times if that may help,
//     and a write once, because a write may have been executed although its response was lost. It
//     adds the remedy to a refusal: the missing scope or permission, or that the repository is
//     invisible to this token.
//
// Therefore, the libraries' own mechanisms for this are disabled: go-github's rate limit checks,
// client-go's retries and limiter. Gitea's SDK keeps a context in its client, so each call creates a new
// client. Its version is set to empty; otherwise it would request the version from the server.
//
// Parts of a library that do not work reliably are replaced. client-go ends the process if a list of merge
// requests contains a null, so this package decodes that list itself. Only GraphQL returns the identity of
// a GitHub App. This package also decodes deliveries, because the few fields that weir uses are the same on
// all forges, and the other fields should not be kept.
//
// # Rules
//
//   - weir never relies on the content of a webhook. A delivery proves that its sender knows a
//     secret, and names the object to read again: Git then reads a source, or a Client reads a
//     pull request. The text of a comment in a delivery is only compared with the text that the
//     Client reads. If the two differ, weir refuses the command. If they are equal, and the forge
//     does not show edits, this confirms that the comment was not edited. So a sender who knows
//     the secret can only cause refusals. The command itself, its author and the author's
//     permission always come from the forge.
//   - A list is read in pages, up to a thousand items. Reading it again uses the minimum number of
//     requests that can show that nothing changed: a conditional request for each page, or a single
//     one if the forge reports the total number of items.
//   - Text from outsiders (titles, names, comments) is bounded before it is stored. A name that is
//     too long is dropped, never truncated, because a truncated name would name something else.
//   - weir reads a user's permission when it executes a command. A response about another user, or
//     no response, counts as no permission.
package forge
