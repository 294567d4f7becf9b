// Package page serves what a board knows to people and programs: HTML pages, the API below
// /api/v1, /healthz and /readyz.
//
// The way of a request is the same everywhere. web has a method for each address. It
// finds what is asked for on the board, and a view makes of it what the template reads:
// text that is ready to be shown, with no decision left. The template is executed into a
// buffer, so that a reader gets a whole page or none, and hidden characters in it are
// written out before it is sent.
//
// Terms. A view is the value that one template reads; its type is in view*.go and named
// after the page. The layout is what all pages share, and each view embeds it. A mark is
// how something stands, in one of the words of report.Phase, and at the same time the CSS
// class that draws it. The viewer is who reads: what the page offers depends on it, what
// it shows does not.
//
// Rules, and why:
//
//   - Nothing here changes anything, and every address answers GET and HEAD only. Forms
//     post to package commands, behind package access. A handler that could write would
//     need its own protection against forged requests.
//   - Nothing is loaded from elsewhere, and nothing inline runs: the headers forbid it, so
//     that a text which breaks out of its place still cannot act. Styles and script are
//     embedded and have the hash of their content in their name, for browsers to keep.
//   - Pages work without script. Script only replaces parts of a page that package live
//     says have changed.
//   - Every list is cut to a window, and each page has a bound on its rows: the page of a
//     fleet of 10,000 pools costs about what that of ten costs.
//   - Pictures are SVG whose numbers are worked out here. Each says in words what it
//     shows, and a shape as well as a colour tells states apart.
//   - Addresses hold the filter, so that a view can be kept and sent to somebody. A value
//     that no filter knows finds nothing, rather than everything.
//   - What the page shows was redacted when the board took it in. The page redacts
//     nothing.
//   - Answers to programs carry an ETag over their content: who asks again and again costs
//     few bytes.
package page
