package html

import "preflight/internal/catalog"

var catalogue = catalog.MustLoad()
