package source

// SetMirrorLimits makes the limits of a mirror small enough to test.
func SetMirrorLimits(g *Git, packs int, objectBytes int64) {
	m := g.backend.(*mirrorBackend).mirror
	m.limits.packs, m.limits.objectBytes = packs, objectBytes
}

// SetMirrorBytes makes the size small at which a mirror is made again.
func SetMirrorBytes(g *Git, bytes int64) {
	g.backend.(*mirrorBackend).mirror.limits.mirrorBytes = bytes
}
