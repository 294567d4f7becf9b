package awsemu

import "strconv"

// ltData is the body of a launch template version: the members of the API's
// ResponseLaunchTemplateData by name. A scalar is the text that is on the wire, a
// structure a map, a list a slice; a member that was not sent is absent. Bodies
// never change once they are stored.
type ltData map[string]any

// text returns a scalar, "" where it is absent.
func (d ltData) text(name string) string {
	s, _ := d[name].(string)
	return s
}

// integer returns a number, 0 where it is absent.
func (d ltData) integer(name string) int64 {
	n, err := strconv.ParseInt(d.text(name), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// sub returns a structure; one that is absent reads as empty.
func (d ltData) sub(name string) ltData {
	m, _ := d[name].(map[string]any)
	return m
}

// list returns the structures of a list.
func (d ltData) list(name string) []ltData {
	items, _ := d[name].([]any)
	var out []ltData
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// texts returns the scalars of a list.
func (d ltData) texts(name string) []string {
	items, _ := d[name].([]any)
	var out []string
	for _, item := range items {
		if s, ok := item.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// has says whether a member was sent.
func (d ltData) has(name string) bool {
	_, ok := d[name]
	return ok
}

// firstInterface is the primary network interface, empty where there is none.
func (d ltData) firstInterface() ltData {
	if all := d.list("NetworkInterfaces"); len(all) > 0 {
		return all[0]
	}
	return nil
}

// tagsFor returns the tags that the body gives resources of a type.
func (d ltData) tagsFor(resourceType string) tags {
	ts := tags{}
	for _, spec := range d.list("TagSpecifications") {
		if spec.text("ResourceType") != resourceType {
			continue
		}
		for _, t := range spec.list("Tags") {
			ts.set(t.text("Key"), t.text("Value"))
		}
	}
	return ts
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
