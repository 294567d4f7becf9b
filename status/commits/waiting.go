package commits

// Waiting is how many commit statuses are still to be posted.
func (c *Commits) Waiting() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, tracks := range c.tracks {
		for _, t := range tracks {
			for _, ct := range t.Contexts {
				if ct.open() {
					n++
				}
			}
		}
	}
	return n
}
