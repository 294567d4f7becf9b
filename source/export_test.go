package source

import "time"

// SetMirrorLimits makes the limits of a mirror small enough to test.
func SetMirrorLimits(g *Git, packs int, objectBytes int64) {
	m := g.backend.(*mirrorBackend).mirror
	m.limits.packs, m.limits.ObjectBytes = packs, objectBytes
}

// SetUnpackLimit makes the time short that a pack may take to read.
func SetUnpackLimit(g *Git, limit time.Duration) {
	g.backend.(*mirrorBackend).mirror.limits.Unpack = limit
}

// SetPullLimits makes the limits on pull requests small enough to test.
func SetPullLimits(g *Git, pulls int, bytes int64) {
	m := g.backend.(*mirrorBackend).mirror
	m.limits.pulls, m.limits.pullBytes = pulls, bytes
}

// SetMirrorBytes makes the size small at which a mirror is made again.
func SetMirrorBytes(g *Git, bytes int64) {
	g.backend.(*mirrorBackend).mirror.limits.mirrorBytes = bytes
}
