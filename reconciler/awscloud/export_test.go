package awscloud

// Remembered counts what is remembered of things that have names.
func (c *Cloud) Remembered() map[string]int { return c.memory.Sizes() }
