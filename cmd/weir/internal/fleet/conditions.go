package fleet

// conditions are what the configuration demands of each item, by its name.
func conditions(items []*item, targets []Target) map[string]Conditions {
	names := make([]string, len(targets))
	for i, t := range targets {
		names[i] = t.Name
	}
	out := make(map[string]Conditions, len(items))
	for _, it := range items {
		c := Conditions{Rendered: it.render.touchedBy}
		if len(it.target.DependsOn) > 0 {
			c.DependsOn = it.target.Dependencies(it.name, it.match, names)
		}
		// Zones were found when the configuration was read.
		c.Windows, _ = it.target.Calendar()
		out[it.name] = c
	}
	return out
}
