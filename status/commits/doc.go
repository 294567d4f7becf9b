// Package commits writes commit statuses: verdicts on the commits that sources reach, and on the
// heads of pull requests. A journal holds the wanted statuses before the first "pending" is posted,
// so that no crash leaves one behind.
package commits
