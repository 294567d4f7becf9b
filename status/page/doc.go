// Package page serves what a board knows to people and programs: HTML pages, the API below
// /api/v1, /healthz and /readyz.
//
// Every request goes the same way. web has a method for each address. It reads the
// answer from the board, and a view turns that into what the template reads: text that
// is ready to be shown, with no decision left. The template is executed into a buffer,
// so that a reader gets a whole page or none, and hidden characters in it are written
// out before it is sent.
//
// Terms. A view is the value that one template reads; its type is in view*.go and named
// after the page. The layout is what all pages share, and each view embeds it. A mark is
// a state, a value of report.Phase, and at the same time the CSS class that draws it. The
// viewer is who reads: what the page offers depends on it, what it shows does not.
//
// Rules, and why:
//
//   - Nothing here changes anything, and every address answers GET and HEAD only. Forms
//     post to package commands, behind package access. A handler that could write would
//     need its own protection against forged requests.
//   - Nothing is loaded from elsewhere, and nothing inline runs: the headers forbid it,
//     so that a text which breaks out of its element still cannot act. Styles and script
//     are embedded, with the hash of their content in their name, so that browsers keep
//     them.
//   - Pages work without script. Script only replaces parts of a page that package live
//     says have changed.
//   - Every list is cut to a window, and each page bounds its rows: the page of a fleet
//     of 10,000 pools costs about what that of ten costs.
//   - Pictures are SVG whose numbers are worked out here. Each has a text that says
//     what it shows, and states differ in shape as well as in colour.
//   - Addresses hold the filter, so that a reader can keep a view and send it on. A value
//     that no filter knows finds nothing, rather than everything.
//   - What the page shows was redacted when the board took it in. The page redacts
//     nothing.
//   - Answers to programs carry an ETag over their content: who asks again and again costs
//     few bytes.
package page
