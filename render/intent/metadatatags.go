package intent

import (
	"regexp"
	"sync"
)

// metadataTag is the form of a tag's key that instance metadata can show ("View tags
// for your EC2 instances using instance metadata" in EC2's user guide).
var metadataTag = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9a-zA-Z\-_+=,.@:]{1,255}$`) })

// HiddenTags are the keys of tags that instances get and their metadata is to show and
// cannot: EC2 refuses to launch them. The list is empty where the template shows no
// tags.
func (d *TemplateData) HiddenTags() (keys []string) {
	if d.MetadataOptions == nil || d.MetadataOptions.InstanceMetadataTags != "enabled" {
		return nil
	}
	for _, s := range d.TagSpecifications {
		if s.ResourceType != "instance" {
			continue
		}
		for _, t := range s.Tags {
			if !metadataTag().MatchString(t.Key) {
				keys = append(keys, t.Key)
			}
		}
	}
	return keys
}
