package config

// Notify sends signed events to a receiver as they happen.
type Notify struct {
	// URL is the address to which weir sends each event, as a POST with JSON. weir does not follow
	// redirects.
	URL string `yaml:"url"`
	// SecretFile holds the secret that signs the events, with at least 16 characters. weir reads it
	// for each event.
	SecretFile string `yaml:"secretFile"`
	// Events lists the kinds of events to send. An empty list sends all events.
	Events []string `yaml:"events"`
}

// WebhookFiles returns the files with secrets of webhooks, for both directions.
func (c *Config) WebhookFiles() []string {
	var out []string
	for _, f := range c.Forges {
		out = append(out, f.WebhookSecretFile)
	}
	for _, n := range c.Notify {
		out = append(out, n.SecretFile)
	}
	return present(out...)
}
