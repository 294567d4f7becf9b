// Package notify sends signed events to receivers over HTTP. A slow receiver does not delay the others.
// Waiting events are in memory only; the history stores events durably.
package notify
