// Package notify sends events to receivers over HTTP, signed, each receiver at its own
// pace. Waiting events are in memory only: the durable record is the history.
package notify
