package awscloud

// Remembered counts what is remembered of things that have names.
func (c *Cloud) Remembered() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return map[string]int{
		"nodegroups": len(c.nodegroups), "updates": len(c.updates), "fresh": len(c.fresh.made), "hooks": len(c.hooks.known),
		"activities": len(c.activities.known), "gone": len(c.gone.found), "templates": len(c.versions.templates),
	}
}
