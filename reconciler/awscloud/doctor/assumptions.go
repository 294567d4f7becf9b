package doctor

// needs is the kind of access that a check needs.
type needs int

const (
	reads needs = iota
	applies
	nodegroups
)

// assumption is a row of the page of assumptions.
type assumption struct {
	name  string
	needs needs
	// never explains why no visit can check it. absent names what the account does not have if a visit found
	// nothing to check.
	never, absent string
}

const (
	byPolicy    = "shown only by a role that has exactly the policy that weir policy prints for the instance " + Instance + ": where every write of a visit with --apply worked under it, it holds"
	noRefreshes = "no group has two instance refreshes"
)

// assumptions lists all assumptions in the order of the page. A test compares both.
var assumptions = []assumption{
	{name: "tags-of-resources", never: byPolicy},
	{name: "launch-template-condition", never: "the printed policy holds either way, and no call tells which"},
	{name: "nodegroup-tags-asked-for", never: byPolicy},
	{name: "group-tags-asked-for", never: byPolicy},
	{name: "node-role-policies", never: byPolicy},
	{name: "encryption-context-key", never: "a visit uses no key of KMS"},
	{name: "alarms-asked-for", never: byPolicy},
	{name: "denied-where-missing", needs: applies},

	{name: "aliases-in-one-list", needs: reads, absent: "the account has no launch template"},
	{name: "version-tokens", needs: applies},
	{name: "description-units", needs: applies},
	{name: "quota-codes", never: "a visit uses no quota up"},
	{name: "pages-of-a-thousand", needs: reads},
	{name: "full-filters", needs: reads},
	{name: "metadata-tags-text", needs: applies},
	{name: "launch-failure-texts", needs: reads, absent: "no launch has failed lately"},
	{name: "nodegroup-launch-hook", needs: reads, absent: "the account has no nodegroup with a group"},
	{name: "visible-in-two-minutes", never: "a visit makes no role and no profile, which take longest"},
	{name: "deleted-version-texts", needs: applies},
	{name: "unknown-name-texts", needs: applies},
	{name: "dry-run-checks", needs: applies},
	{name: "quota-families", needs: reads, absent: "Service Quotas has none of the quotas"},
	{name: "reservation-or-nothing", never: "a visit reserves no capacity"},
	{name: "wavelength-nodegroups", never: "a visit uses no wavelength zone"},

	{name: "override-images-shown", never: "it takes two images and a refresh between them"},
	{name: "root-volume-versions", never: "it takes two images and a refresh between them"},
	{name: "refreshes-newest-first", needs: reads, absent: noRefreshes},
	{name: "desired-configuration-comes-back", needs: applies},
	{name: "rollback-is-cancelled", needs: applies},
	{name: "skip-matching-types", needs: applies},
	{name: "refresh-ends-at-its-last-checkpoint", needs: applies},
	{name: "checkpoints-count-the-group", needs: applies},
	{name: "refresh-batches", never: "it takes a group of several machines"},
	{name: "empty-overrides", needs: applies},
	{name: "empty-overrides-in-refresh", needs: applies},
	{name: "warm-pool-metrics", needs: applies},
	{name: "traffic-source-type", never: "a visit attaches no target group"},
	{name: "unit-of-capacity", needs: applies},
	{name: "lifecycle-action-gone", needs: applies},
	{name: "retained-states", needs: reads, absent: "no machine is retained"},
	{name: "unpublished-limits", never: "a visit does not call until AWS throttles it; weir_aws_calls_total of a daemon shows it"},

	{name: "codes-told-apart-by-text", needs: reads},
	{name: "groups-behind-nodegroups", needs: nodegroups},
	{name: "degraded-takes-updates", never: "a visit breaks no nodegroup"},
	{name: "unchanged-version-is-taken", needs: nodegroups},
	{name: "nodegroup-warm-pool-capacity", needs: nodegroups},
	{name: "nodegroup-defaults", needs: nodegroups},

	{name: "answers-tell-the-time", needs: reads},
	{name: "eks-image-names", needs: reads, absent: "Systems Manager has none of the parameters"},
}
