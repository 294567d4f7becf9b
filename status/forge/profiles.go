package forge

// The kinds of forges. Generic is any sender of signed webhooks.
const (
	GitHub  Kind = "github"
	Gitea   Kind = "gitea"
	Forgejo Kind = "forgejo"
	GitLab  Kind = "gitlab"
	Generic Kind = "generic"
)

// profiles returns the profiles of all kinds, in the order of the documentation.
func profiles() []Profile {
	return []Profile{gitHubProfile(), giteaProfile(), forgejoProfile(), gitLabProfile(), genericProfile()}
}

// https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api allows 80
// requests a minute that create content. weir leaves some of them for other programs.
func gitHubProfile() Profile {
	return Profile{
		Kind: GitHub, Label: "github", PullRequest: "pull request", Repository: "repository",
		Apps:    true,
		Limits:  Limits{Context: 255, Description: 140, PerMinute: 60, Comment: 65_536},
		address: "https://github.com", hosts: []string{"github."},
		paths: paths{commit: "/commit/", file: "/blob/", line: "#L", pull: "/pull/", comment: "#issuecomment-"},
		head:  "refs/pull/%d/head", merge: "refs/pull/%d/merge",
		webhook: webhook{
			event: []string{"X-GitHub-Event"}, delivery: []string{"X-GitHub-Delivery"}, signature: []string{"X-Hub-Signature-256"},
			decode: (*Hint).github,
		},
		open: newGitHub,
	}
}

// Gitea documents no limits. These limits work with every Gitea: the columns for comments in older
// databases have 65,535 bytes. Gitea also sends GitHub's headers, and Forgejo also sends Gitea's.
func giteaProfile() Profile {
	return Profile{
		Kind: Gitea, Label: "gitea", PullRequest: "pull request", Repository: "repository",
		Limits: Limits{Context: 255, Description: 255, Comment: 65_000},
		hosts:  []string{"gitea."},
		paths:  paths{commit: "/commit/", file: "/src/commit/", line: "#L", pull: "/pulls/", comment: "#issuecomment-"},
		head:   "refs/pull/%d/head",
		webhook: webhook{
			event: []string{"X-Forgejo-Event", "X-Gitea-Event"}, delivery: []string{"X-Forgejo-Delivery", "X-Gitea-Delivery"},
			signature: []string{"X-Forgejo-Signature", "X-Gitea-Signature", "X-Hub-Signature-256"},
			decode:    (*Hint).github,
		},
		open: newGitea,
	}
}

// Forgejo differs from Gitea only in its name.
func forgejoProfile() Profile {
	p := giteaProfile()
	p.Kind, p.hosts = Forgejo, []string{"forgejo.", "codeberg."}
	return p
}

// Every GitLab server has its own rate limit, which is in its responses. Its Idempotency-Key stays the same
// when GitLab repeats a delivery.
func gitLabProfile() Profile {
	return Profile{
		Kind: GitLab, Label: "gitlab", PullRequest: "merge request", Repository: "project",
		GitUser: "oauth2",
		Limits:  Limits{Context: gitlabText, Description: gitlabText, Comment: 1_000_000},
		groups:  true, hosts: []string{"gitlab."},
		paths: paths{commit: "/-/commit/", file: "/-/blob/", line: "#L", pull: "/-/merge_requests/", comment: "#note_"},
		head:  "refs/merge-requests/%d/head", merge: "refs/merge-requests/%d/merge",
		webhook: webhook{
			event: []string{"X-Gitlab-Event"}, delivery: []string{"Idempotency-Key", "X-Gitlab-Event-UUID", "X-Gitlab-Webhook-UUID"},
			token: "X-Gitlab-Token", senderIsAuthor: true, decode: (*Hint).gitlab,
		},
		open: newGitLab,
	}
}

// The signature of weir's own notifications includes a timestamp, so they do not use the first signature
// header.
func genericProfile() Profile {
	return Profile{
		Kind: Generic, Label: "generic", PullRequest: "pull request", Repository: "repository", WebhooksOnly: true,
		webhook: webhook{
			event: []string{"X-Event"}, delivery: []string{"X-Delivery", "X-Request-Id"}, withoutEvent: true,
			signature: []string{"X-Hub-Signature-256", "X-Signature-256", "X-Signature"}, decode: (*Hint).generic,
		},
	}
}
