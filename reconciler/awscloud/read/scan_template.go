package read

import (
	"github.com/weir-gitops/weir/reconciler/observed"
)

// scanTemplates reads an answer of DescribeLaunchTemplates, which is a page of list.
func scanTemplates(body []byte, list *list[observed.Template]) (templates []*observed.Template, next string, err error) {
	err = scanPage(body, "DescribeLaunchTemplatesResponse", "", func(s *pageScan) {
		for s.Child() {
			switch string(s.Name()) {
			case "launchTemplates":
				s.members(func() { templates = append(templates, list.read(s, scanTemplate)) })
			case "nextToken":
				next = s.Text()
			default:
				s.Skip()
			}
		}
	})
	return templates, next, err
}

// scanTemplate is template for a scanner. It reads one template.
func scanTemplate(s *pageScan) observed.Template {
	t := observed.Template{Tags: make(map[string]string, 12)}
	for s.Child() {
		switch string(s.Name()) {
		case "launchTemplateId":
			t.ID = s.Text()
		case "launchTemplateName":
			t.Name = s.Text()
		case "defaultVersionNumber":
			t.DefaultVersion = s.int64()
		case "latestVersionNumber":
			t.LatestVersion = s.int64()
		case "tagSet":
			s.members(func() {
				var key, value string
				for s.Child() {
					switch string(s.Name()) {
					case "key":
						key = s.Text()
					case "value":
						value = s.Text()
					default:
						s.Skip()
					}
				}
				t.Tags[key] = value
			})
		default:
			s.Skip()
		}
	}
	return t
}
