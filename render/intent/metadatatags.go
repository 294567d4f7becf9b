package intent

import (
	"github.com/weir-gitops/weir/render/lazyregexp"
)

// metadataTag matches the tag keys that instance metadata can show ("View tags for your EC2 instances using
// instance metadata" in EC2's user guide).
var metadataTag = lazyregexp.New(`^[0-9a-zA-Z\-_+=,.@:]{1,255}$`)

// HiddenTags returns the keys of instance tags that instance metadata cannot show although the template
// enables tags there. EC2 refuses to launch such instances. The result is empty if the template does not
// enable tags in metadata.
func (d *TemplateData) HiddenTags() (keys []string) {
	if d.MetadataOptions == nil || d.MetadataOptions.InstanceMetadataTags != "enabled" {
		return nil
	}
	for _, s := range d.TagSpecifications {
		if s.ResourceType != "instance" {
			continue
		}
		for _, t := range s.Tags {
			if !metadataTag.MatchString(t.Key) {
				keys = append(keys, t.Key)
			}
		}
	}
	return keys
}
