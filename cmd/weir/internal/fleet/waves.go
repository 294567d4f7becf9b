package fleet

import "strings"

// chains finds the targets that others come after, by way of others too.
type chains struct {
	direct map[string][]string // by target
	// lists are those that were found, by the direct ones; nil while one is.
	lists map[string][]string
}

// before are the targets before a target, the first of all first. Those with the same
// direct ones share one list, so that hundreds after hundreds cost little.
func (c *chains) before(target string) []string {
	direct := c.direct[target]
	if len(direct) == 0 {
		return nil
	}
	key := strings.Join(direct, "\n")
	if list, known := c.lists[key]; known {
		return list
	}
	c.lists[key] = nil // the configuration has no cycle; if it had, it would end here
	var out []string
	seen, walked := map[string]bool{}, map[*string]bool{}
	add := func(name string) {
		if !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	for _, name := range direct {
		if list := c.before(name); len(list) > 0 && !walked[&list[0]] {
			walked[&list[0]] = true
			for _, earlier := range list {
				add(earlier)
			}
		}
		add(name)
	}
	c.lists[key] = out
	return out
}
