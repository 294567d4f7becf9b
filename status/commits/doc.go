// Package commits writes commit statuses: verdicts on the commits that sources reach, and on the heads of
// pull requests. A journal stores the wanted statuses before the first "pending" is posted, so that a crash
// leaves none behind.
package commits
